"""Arrays and configs -> figures. Pure functions: nothing here calls Streamlit."""
