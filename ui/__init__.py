"""Code that all pages share. Streamlit lives here and in pages/ only."""
