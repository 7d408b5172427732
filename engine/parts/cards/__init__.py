"""Cards of the parts: names, sentences and formulas for the screen, parameters and memory for the ledger."""
