"""Texts and tasks as streams of tokens: corpora, tokenizers, tasks with a known best loss, pairs."""
