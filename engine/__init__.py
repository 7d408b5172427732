"""Glassformer's engine: tiny Transformers whose every activation can be seen.

A library without a screen: nothing here prints, and nothing here imports Streamlit or Plotly.
"""
