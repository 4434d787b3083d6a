"""`make docs`: write the generated pages anew."""

from docs.generators import expansion, gate, studies
from docs.generators.code_blocks import PAGES, refresh_outputs
from docs.generators.reference import pages

made = (
    {path: text.encode() for path, text in pages().items()}
    | gate.pictures()
    | studies.pictures()
    | expansion.pictures()
)
for path, content in made.items():
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    print(f"wrote {path.parent.name}/{path.name}")
for page in PAGES:
    if (text := refresh_outputs(page)) != page.read_text(encoding="utf-8"):
        page.write_text(text, encoding="utf-8")
        print(f"printed anew: {page.name}")
