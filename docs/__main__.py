"""`make docs`: write the generated pages anew."""

from docs.generate import pages

for path, text in pages().items():
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path.parent.name}/{path.name}")
