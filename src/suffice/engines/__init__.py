"""Where documents are stored and jobs run: embedded (SQLite and tantivy), Qdrant, and Dask."""
