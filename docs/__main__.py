"""`make docs`: write the generated pages anew."""

from docs import expansion, gates, studies
from docs.generate import pages
from docs.outputs import PAGES, refreshed

made = {path: text.encode() for path, text in pages().items()} | gates.pictures() | studies.pictures() | expansion.pictures()
for path, content in made.items():
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    print(f"wrote {path.parent.name}/{path.name}")
for page in PAGES:
    if (text := refreshed(page)) != page.read_text(encoding="utf-8"):
        page.write_text(text, encoding="utf-8")
        print(f"printed anew: {page.name}")
