"""What the views of Sampling say."""

from ui.look import Words

SENTENCE = (
    "The model ends in a number for each token. From there to one token there are a few stages, each with a"
    " knob."
)

STAGES = Words(
    see=(
        "A row for each of the likeliest tokens, a column for each stage. Bars are probabilities, $p_i ="
        " e^{l_i} / \\sum_j e^{l_j}$, over the tokens that are left. A hatched cell says which stage"
        " removed the token. The order is Hugging Face's: penalty, temperature, top-k, top-p, min-p."
    ),
    why=(
        "The model gives a number for every token and no choice. How the choice is made decides between"
        " dull, lively and mad, with the same weights."
    ),
    attempt=(
        "Set the temperature to 1.5 and watch the tail grow, then cut it with top-p 0.9. Set it to 0: one"
        " token is left, and the seed no longer matters. Then move the penalty: it touches only tokens of"
        " the text so far."
    ),
)

DRAWS = Words(
    see=(
        "Bars are shares of the draws, the upright marks are the probabilities. Below, their distance"
        " against the number of draws, both logarithmic."
    ),
    why=(
        "One sample says little about a model. How far shares stray from probabilities shrinks as"
        " $1/\\sqrt{n}$: for one more digit, draw a hundred times as often."
    ),
    attempt=(
        "Press Draw and watch. Change the seed: the first draws differ, the thousandth histogram hardly."
        " At temperature 0.2 it settles sooner."
    ),
)

TEMPERATURES = Words(
    see=(
        "The same logits divided by five temperatures $\\tau$: $p_i \\propto e^{l_i / \\tau}$. Below, a"
        " text that the model wrote with each, and the entropy of its first draw."
    ),
    why=(
        "Low temperatures repeat what is safe, high ones let the unlikely in, and one unlikely token"
        " leads to the next. 0.8 is a usual compromise."
    ),
    attempt=(
        "Read from left to right. Then take a run of yours and drag the step back: an untrained model"
        " writes noise at every temperature."
    ),
)
