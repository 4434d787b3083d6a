"""`make docs`: write the generated pages and pictures, and refresh the outputs of code blocks."""

from docs.generators.code_blocks import PAGES, refresh_outputs
from docs.generators.pages import pages, pictures

for path, content in ({path: text.encode() for path, text in pages().items()} | pictures()).items():
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    print(f"wrote {path.parent.name}/{path.name}")
for page in PAGES:
    if (text := refresh_outputs(page)) != page.read_text(encoding="utf-8"):
        page.write_text(text, encoding="utf-8")
        print(f"refreshed {page.name}")
