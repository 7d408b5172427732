"""The view "A thousand draws": how far shares stray from probabilities."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.sample import uniform
from engine.sample.outcome import likeliest_ids, tally
from pages.output.sampling import figures
from pages.output.sampling.place import LIKELIEST, place, staged
from ui import explain
from ui.players.plot import plot
from ui.players.sampler import sampler, settings
from ui.subject import Subject
from ui.text.markdown import safe

DRAWS = 1000


def draw_draws(subject: Subject) -> None:
    """Drawing again and again from the last stage's distribution."""
    position, seed = place(subject)
    config = settings(seed)
    logits, previous = subject.recording().logits[position], subject.ids[: position + 1]
    last = staged(subject, position, config, logits)[-1]
    numbers = uniform(seed, DRAWS).numpy()
    found = tally(last.probabilities, numbers)
    sampler(logits, subject.vocabulary, previous, config, numbers, mode="draws", drawn=found.ids)
    order = likeliest_ids(last.probabilities, min(LIKELIEST, last.kept))
    words = [subject.vocabulary[i] for i in order]
    p, shares = found.probabilities[order], found.shares[order]
    with st.expander("The engine's own thousand draws, to save"):
        table = pd.DataFrame(
            {"token": words, "id": order, "probability": p, "draws": found.counts[order], "share": shares}
        )
        plot(
            figures.shares(words, p, shares),
            key="sampling_shares",
            height=300,
            name="thousand-draws",
            data=table,
            alt=f"Share of {DRAWS:,} draws beside the probability, for the {len(words)} likeliest tokens.",
        )
    likely = int(order[0])
    explain.takeaway(
        f"**{DRAWS:,} draws with seed {seed}: “{safe(words[0])}” came {found.counts[likely]} times;"
        f" expected were {found.expected[likely]:.0f}.** In all the shares are {found.away:.1%} away from the"
        f" probabilities. `engine.sample.draw` counted these; the browser uses the same {DRAWS:,} random"
        " numbers."
    )
