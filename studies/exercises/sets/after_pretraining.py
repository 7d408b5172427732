"""Backpropagation, and what comes after pre-training: fine-tuning, reward, learning from a prompt, chains of
thought, benchmarks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from random import Random

from studies.exercises.arithmetic import dot, shown
from studies.exercises.exercise import Exercise, Mistake, See, mistakes, see
from studies.exercises.forms import Numbers

BACKWARD = see("shapes", shapes_view="backward")
NONZERO = (-4, -3, -2, -1, 1, 2, 3, 4)
BETAS = (0.9, 0.999)  # PyTorch's, of AdamW


def _view(name: str, **controls: str) -> See:
    return see("after", after_view=name, **controls)


def _outer(rows: tuple[float, ...], columns: tuple[float, ...]) -> tuple[float, ...]:
    """Returns the outer product, row after row."""
    return tuple(a * b for a in rows for b in columns)


def _two(rng: Random) -> tuple[int, int]:
    return rng.choice(NONZERO), rng.choice(NONZERO)


# Backpropagation ----------------------------------------------------------------------------------


def logit_gradient(rng: Random) -> Exercise:
    first, second = sorted(rng.sample(range(5, 95, 5), 2))
    shares, right = [first, second - first, 100 - second], rng.randrange(3)
    p = [share / 100 for share in shares]
    y = [float(i == right) for i in range(3)]
    result = tuple(a - b for a, b in zip(p, y, strict=True))
    return Exercise(
        f"A model gives the tokens A, B and C the probabilities {', '.join(f'{s}%' for s in shares)}. The"
        f" next token is {'ABC'[right]}. What is the gradient of the loss with respect to the three logits?",
        Numbers(3, 2),
        result,
        (
            f"The gradient is $p - y$, with $y$ one-hot: {shown(y)}.",
            f"{shown(p, 2)} − {shown(y)} = **{shown(result, 2)}**. Its sum is 0.",
        ),
        mistakes(
            (tuple(-g for g in result), "That is $y - p$: the descent step, not the gradient."),
            (tuple(p), "Those are the probabilities. Subtract 1 at the next token."),
            (
                tuple(g if i == right else 0.0 for i, g in enumerate(result)),
                "The other logits have a gradient too: raising them lowers the right probability.",
            ),
            (
                tuple(-b / a for a, b in zip(p, y, strict=True)),
                "That is the gradient with respect to the probabilities. Continue to the logits.",
            ),
        ),
        BACKWARD,
        {"shares": shares, "right": right},
    )


def matrix_gradient(rng: Random) -> Exercise:
    x, g = _two(rng), _two(rng)
    result = _outer(g, x)
    return Exercise(
        f"$y = Wx$ with $x$ = {shown(x)}; backpropagation gives $\\partial L/\\partial y$ = {shown(g)}. What"
        r" is $\partial L/\partial W$ (2 × 2, row by row)?",
        Numbers(4),
        result,
        (
            r"$y_i = \sum_j W_{ij} x_j$, so $\partial L/\partial W_{ij} = (\partial L/\partial y_i)\, x_j$.",
            f"The rows are {shown(result[:2])} and {shown(result[2:])}: **{shown(result)}**.",
        ),
        mistakes(
            (_outer(x, g), "That is its transpose. A row of $W$ belongs to an output."),
            ((result[0], 0, 0, result[3]), "Every weight has a gradient: each input reaches each output."),
            (tuple(-v for v in result), "That is the descent step. The gradient itself points up."),
            ((*x, *x), "That is $x$ alone. Each row is multiplied by its output's gradient."),
            ((g[0], g[0], g[1], g[1]), "Those are the outputs' gradients. Multiply by the inputs."),
        ),
        BACKWARD,
        {"x": list(x), "g": list(g)},
    )


def adamw_mistakes(weight: float, gradient: float, rate: float, decay: float) -> tuple[Mistake, ...]:
    """Returns the usual mistakes of a weight after AdamW's first step."""
    sign, rest = math.copysign(1, gradient), weight * (1 - rate * decay)
    unbiased = (1 - BETAS[0]) / math.sqrt(1 - BETAS[1])
    return mistakes(
        ((rest - rate * gradient,), "That is SGD's step. AdamW divides by the gradient's size."),
        ((weight - rate * sign,), "You forgot the decay, which is applied to the weight itself."),
        ((rest + rate * sign,), "That is uphill. The step goes against the gradient."),
        ((rest - rate * sign * unbiased,), "You forgot the bias correction of $m$ and $v$."),
        ((weight * (1 - decay) - rate * sign,), "The decay is multiplied by the learning rate."),
    )


def adamw_step(rng: Random) -> Exercise:
    weight, rate, decay = (
        rng.choice([0.4, 0.5, 0.8, 1.2]),
        rng.choice([0.01, 0.02, 0.05]),
        rng.choice([0.1, 0.2]),
    )
    gradient = rng.choice([-1, 1]) * rng.choice([0.03, 0.2, 3.0])
    sign, rest = math.copysign(1, gradient), weight * (1 - rate * decay)
    right = rest - rate * sign
    return Exercise(
        f"A weight is {weight}, its gradient {gradient}. AdamW takes its **first** step: learning rate"
        f" {rate}, weight decay {decay}, $\\beta_1$ = {BETAS[0]}, $\\beta_2$ = {BETAS[1]}, $\\epsilon$ = 0."
        " What is the weight after this step?",
        Numbers(1, 4),
        (right,),
        (
            r"With bias correction $\hat m = g$ and $\hat v = g^2$: the step is $\eta\, g/|g|$, however large"
            " the gradient is.",
            f"Decay: {weight} · (1 − {rate} · {decay}) = {rest:.4f}.",
            f"{rest:.4f} {'−' if sign > 0 else '+'} {rate} = **{right:.4f}**.",
        ),
        adamw_mistakes(weight, gradient, rate, decay),
        BACKWARD,
        {"weight": weight, "gradient": gradient, "rate": rate, "decay": decay},
    )


# Fine-tuning --------------------------------------------------------------------------------------


def adapter_size(rng: Random) -> Exercise:
    (rows, columns), rank = rng.sample([512, 576, 768, 1024, 2048, 4096], 2), rng.choice([1, 2, 4, 8, 16])
    right = rank * (rows + columns)
    return Exercise(
        f"A matrix has {rows} rows and {columns} columns. LoRA of rank {rank} learns its change. How many"
        " parameters are trained?",
        Numbers(),
        (right,),
        (
            f"$B$ is {rows} × {rank}, $A$ is {rank} × {columns}.",
            f"{rank} · ({rows} + {columns}) = **{right:,}**; the matrix has {rows * columns:,}.",
        ),
        mistakes(
            ((rows * columns,), "That is the whole matrix. LoRA trains two thin ones."),
            ((rank * rows * columns,), "You multiplied rows by columns. The factors are separate."),
            ((rank * rows,), "That is only $B$. $A$ is trained too."),
            ((rank * columns,), "That is only $A$. $B$ is trained too."),
            ((rank * rank * (rows + columns),), "The rank counts once in each factor."),
        ),
        _view("finetune"),
        {"rows": rows, "columns": columns, "rank": rank},
    )


def adapter_change(rng: Random) -> Exercise:
    w, up, down = (*_two(rng), *_two(rng)), _two(rng), _two(rng)
    change = _outer(up, down)
    result = tuple(a + b for a, b in zip(w, change, strict=True))
    return Exercise(
        f"LoRA of rank 1: $W$ has the rows {shown(w[:2])} and {shown(w[2:])}, $B$ is the column {shown(up)},"
        f" $A$ the row {shown(down)}. Which matrix does the layer use (row by row)?",
        Numbers(4),
        result,
        (
            f"$BA$ has the rows {shown(change[:2])} and {shown(change[2:])}: multiples of $A$.",
            f"$W + BA$: **{shown(result)}**.",
        ),
        mistakes(
            (change, "That is the change alone. $W$ is still there, frozen."),
            (
                tuple(a + b for a, b in zip(w, _outer(down, up), strict=True)),
                "You swapped $A$ and $B$: a row of $BA$ is $A$ times an entry of $B$.",
            ),
            (
                tuple(value + dot(up, down) for value in w),
                "That adds $A \\cdot B$, one number. $BA$ is a matrix.",
            ),
            (tuple(a - b for a, b in zip(w, change, strict=True)), "The change is added."),
        ),
        _view("finetune"),
        {"w": list(w), "up": list(up), "down": list(down)},
    )


def counted_tokens(rng: Random) -> Exercise:
    lessons, prompt, answer = rng.randint(4, 12), rng.randint(5, 14), rng.randint(2, 6)
    every, only = lessons * (prompt + answer - 1), lessons * answer
    return Exercise(
        f"{lessons} pairs, each a prompt of {prompt} tokens and an answer of {answer}. Over how many"
        " predictions is the loss averaged if it counts every token, and if it counts the answers alone?"
        " (Both numbers.)",
        Numbers(2),
        (every, only),
        (
            f"Nothing predicts the first token of a text: {lessons} · ({prompt} + {answer} − 1) = {every}.",
            f"Each token of an answer is predicted, the first from the prompt's last: {lessons} · {answer} ="
            f" {only}. **{every}** and **{only}**.",
        ),
        mistakes(
            ((lessons * (prompt + answer), only), "Nothing comes before a text's first token: no loss."),
            (
                (every, lessons * (answer - 1)),
                "The answer's first token is predicted too, from the prompt's last.",
            ),
            ((every, every - only), "The second counts the prompts. It should count answers."),
            ((prompt + answer - 1, answer), f"That is one pair. There are {lessons}."),
        ),
        _view("finetune"),
        {"lessons": lessons, "prompt": prompt, "answer": answer},
    )


# Reward -------------------------------------------------------------------------------------------


def advantage(rng: Random) -> Exercise:
    group = rng.choice([4, 8, 10, 16])
    good = rng.randint(1, group - 1)
    mean = good / group
    spread = math.sqrt(mean * (1 - mean))
    return Exercise(
        f"A group of {group} answers to one question: {good} with reward 1, the others with 0. What is the"
        " advantage (reward minus the group's mean) of a rewarded answer, and of another? (Both numbers.)",
        Numbers(2, 3),
        (1 - mean, -mean),
        (
            f"The mean reward is {good}/{group} = {mean:.3f}.",
            f"1 − {mean:.3f} = **{1 - mean:.3f}** and 0 − {mean:.3f} = **{-mean:.3f}**: they sum to 0.",
        ),
        mistakes(
            ((1, 0), "Those are the rewards. The baseline, their mean, is subtracted."),
            ((mean - 1, mean), "The other way round: a rewarded answer becomes likelier."),
            (
                ((1 - mean) / spread, -mean / spread),
                "You also divided by the standard deviation, as GRPO does. Here only the mean is subtracted.",
            ),
            ((1 - mean, 0), "An answer without a reward is below the mean: it becomes less likely."),
        ),
        _view("reward"),
        {"group": group, "good": good},
    )


def any_of(rng: Random) -> Exercise:
    percent, tries = rng.randint(10, 60), rng.choice([2, 3, 4, 8])
    p = percent / 100
    miss = (1 - p) ** tries
    right = 100 * (1 - miss)
    return Exercise(
        f"A model's first try is right {percent}% of the time. It draws {tries} answers"
        " independently. How often is **at least one** right, in percent?",
        Numbers(1, 1, "%"),
        (right,),
        (
            f"All are wrong with probability $(1 - {p})^{{{tries}}}$ = {miss:.4f}.",
            f"1 − {miss:.4f} = **{right:.1f}%**.",
        ),
        mistakes(
            ((percent * tries,), "Probabilities of tries do not add up: several may be right at once."),
            ((100 * p**tries,), "That is how likely *all* are right."),
            ((100 * miss,), "That is how likely *none* is right."),
            ((float(percent),), "That is a single try."),
        ),
        _view("reward"),
        {"percent": percent, "tries": tries},
    )


def penalty(rng: Random) -> Exercise:
    now, before = rng.sample([0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9], 2)
    weight = rng.choice([0.1, 0.2, 0.5])
    ratio = math.log(now / before)
    right = 1 - weight * ratio
    return Exercise(
        f"An answer has reward 1. The model gives it probability {now}; the model that training began with,"
        f" {before}. The KL penalty is {weight} times $\\ln$ of their ratio. What remains of the reward?",
        Numbers(1, 2),
        (right,),
        (
            f"$\\ln({now}/{before})$ = {ratio:.3f}.",
            f"1 − {weight} · {ratio:.3f} = **{right:.2f}**: moving away costs, moving back pays.",
        ),
        mistakes(
            ((1 + weight * ratio,), "You inverted the ratio, or added the penalty."),
            ((1 - weight * math.log2(now / before),), "You used $\\log_2$. Nats take $\\ln$."),
            ((1 - weight * now / before,), "You forgot the logarithm of the ratio."),
            ((1 - weight * (now - before),), "Take the ratio's logarithm, not a difference."),
            ((1 - ratio,), f"You forgot the penalty's weight, {weight}."),
        ),
        _view("reward"),
        {"now": now, "before": before, "weight": weight},
    )


def preference_margin(rng: Random) -> Exercise:
    beta = rng.choice([0.1, 0.2, 0.5])
    chosen, rejected = rng.randint(20, 60), rng.randint(20, 60)
    rose, fell = rng.choice([-6, -4, -2, 2, 4, 6]), rng.choice([4, 8, 10, 14, 20])
    right = beta * (rose + fell)
    return Exercise(
        f"DPO with $\\beta$ = {beta}. The log-probability of the chosen text was -{chosen} in the frozen"
        f" model and is {rose - chosen} now; that of the rejected text was -{rejected} and is"
        f" {-rejected - fell}. What is the margin?",
        Numbers(1, 2),
        (right,),
        (
            f"Log-ratios to the frozen model: {rose} for the chosen text, -{fell} for the rejected.",
            f"{beta} · ({rose} + {fell}) = **{right:.2f}**.",
        ),
        mistakes(
            ((rose + fell,), "You forgot $\\beta$."),
            (
                (beta * (rose - chosen + rejected + fell),),
                "You left the frozen model out. Subtract its log-probability from each.",
            ),
            ((-right,), "The other way round: chosen minus rejected."),
            ((beta * rose,), "That is the chosen text alone. Subtract the rejected one's."),
            ((beta * (rose - fell),), "You added the log-ratios. Subtract the rejected one's."),
        ),
        see("after", after_view="reward", reward_mode="preferences"),
        {"beta": beta, "chosen": [-chosen, rose - chosen], "rejected": [-rejected, -rejected - fell]},
    )


# In-context learning ------------------------------------------------------------------------------


def _points(rng: Random) -> tuple[list[int], list[int]]:
    count = rng.choice([2, 3, 4])
    return [rng.choice(NONZERO) for _ in range(count)], [rng.choice(NONZERO) for _ in range(count)]


def _examples(x: list[int], y: list[int]) -> str:
    return ", ".join(f"({a}, {b})" for a, b in zip(x, y, strict=True))


def single_step(rng: Random) -> Exercise:
    (x, y), rate, query = _points(rng), rng.choice([0.1, 0.2, 0.5]), rng.choice(NONZERO)
    products, squares, n = dot(x, y), dot(x, x), len(x)
    w = rate * products / n
    return Exercise(
        f"Examples (x, y): {_examples(x, y)}. From $w = 0$, one step of gradient descent on"
        rf" $\frac{{1}}{{2n}}\sum_i (w x_i - y_i)^2$ with step size {rate}. What does $w$"
        f" predict at x = {query}?",
        Numbers(1, 2),
        (w * query,),
        (
            rf"At $w = 0$ the gradient is $-\frac{{1}}{{n}}\sum_i x_i y_i$ = {-products / n:.3f}.",
            f"$w$ = {rate} · {products / n:.3f} = {w:.3f}, and at {query} it predicts **{w * query:.2f}**.",
        ),
        mistakes(
            ((w * query * n,), "You forgot 1/n: the loss is a mean over the examples."),
            ((products / n * query,), "You forgot the step size."),
            ((-w * query,), "A step goes *against* the gradient, which has a minus sign."),
            ((w,), "That is $w$. Multiply it by the query."),
            ((products / squares * query,), "That is least squares. One step does not get there."),
        ),
        _view("context"),
        {"x": x, "y": y, "rate": rate, "query": query},
    )


def best_slope(rng: Random) -> Exercise:
    x, y = _points(rng)
    products, squares = dot(x, y), dot(x, x)
    right = products / squares
    ratios = sum(b / a for a, b in zip(x, y, strict=True)) / len(x)
    return Exercise(
        f"Examples (x, y): {_examples(x, y)}. Which slope $w$ of a line through the origin fits them best"
        " (least squares)?",
        Numbers(1, 2),
        (right,),
        (
            r"The derivative of $\sum_i (w x_i - y_i)^2$ is zero at $w = \sum_i x_i y_i / \sum_i x_i^2$.",
            f"{products} / {squares} = **{right:.2f}**.",
        ),
        mistakes(
            ((ratios,), "You averaged y/x. Least squares weights each point by $x^2$."),
            ((products / len(x),), "That is one gradient step of size 1. Divide by $\\sum x^2$."),
            ((products / dot(y, y),), "You divided by $\\sum y^2$: that fits x to y."),
            ((-right,), "The sign is wrong: large x with large y give a positive slope."),
        ),
        _view("context"),
        {"x": x, "y": y},
    )


def step_size(rng: Random) -> Exercise:
    n, d = rng.choice([5, 8, 10, 20, 40]), rng.choice([1, 2, 4, 5, 10])
    best, left = n / (n + d + 1), (d + 1) / (n + d + 1)
    return Exercise(
        f"With {n} examples of {d} numbers each, a gradient step of size $\\eta$ has the expected error"
        rf" $1 - 2\eta + \eta^2 (n + d + 1)/n$. Which $\eta$ is best, and what error remains? (Both"
        " numbers.)",
        Numbers(2, 3),
        (best, left),
        (
            rf"The derivative is zero at $\eta = n/(n + d + 1)$ = {n}/{n + d + 1} = {best:.3f}.",
            f"The error is then $1 - \\eta$: **{best:.3f}** and **{left:.3f}**.",
        ),
        mistakes(
            ((left, best), "You swapped the two."),
            ((best, 0), "One step does not solve it: plug your step size into the error."),
            ((1, (d + 1) / n), "With a step of 1 the error is larger. Set the derivative to zero."),
            ((n / (n + d), d / (n + d)), "You forgot the 1 in n + d + 1."),
        ),
        _view("context"),
        {"n": n, "d": d},
    )


# Chain of thought ---------------------------------------------------------------------------------


def running_parity(rng: Random) -> Exercise:
    bits = [rng.randint(0, 1) for _ in range(rng.choice([5, 6, 7]))]
    sums = tuple(accumulate(bits))
    result = tuple(total % 2 for total in sums)
    return Exercise(
        f"A model finds the parity of {' '.join(map(str, bits))} by a chain of thought: after each bit it"
        " writes the parity so far, 1 if the count of ones is odd. What does it write?",
        Numbers(None),
        result,
        (
            "Each step needs the last result and one new bit: equal bits give 0, different bits 1.",
            f"The ones so far: {shown(sums)}. Odd counts give 1: **{shown(result)}**.",
        ),
        mistakes(
            (sums, "Those are the counts. Write whether each is odd."),
            (tuple(bits), "Those are the bits themselves. Add up what came before."),
            (tuple(1 - bit for bit in result), "The other way round: 1 stands for odd."),
            (
                tuple(total % 2 for total in accumulate(reversed(bits))),
                "You began with the last bit. The first is read first.",
            ),
        ),
        _view("aloud"),
        {"bits": bits},
    )


def column_carries(rng: Random) -> Exercise:
    columns = rng.choice([3, 4])
    while True:
        first, second = (rng.randrange(10 ** (columns - 1), 10**columns) for _ in range(2))
        pairs, alone = _columns(first, second), _columns(first, second, carried=False)
        result, without = _joined(pairs), _joined(alone)
        swapped, forwards = _joined([(digit, carry) for carry, digit in pairs]), _joined(pairs[::-1])
        if len({result, without, swapped, forwards}) == 4:  # else a mistake could not be told from another
            break
    return Exercise(
        f"A model adds {first} + {second} by a chain of thought: from the last column to the first it writes"
        " the carry and the digit of each column's total. Which numbers does it write?",
        Numbers(None),
        result,
        (
            "A column's total is its two digits plus the carry into it: the tens are the new carry.",
            f"The last column's total is {10 * pairs[0][0] + pairs[0][1]}, so the model begins with"
            f" {shown(pairs[0])}: **{shown(result)}**.",
        ),
        mistakes(
            (without, "You left out the carries: each column adds the one before it."),
            (swapped, "You wrote the digit first. Here the carry comes before its digit."),
            (forwards, "You began with the first column. Carries run from the last."),
            (tuple(digit for _, digit in pairs), "Those are the digits. Write each carry too."),
        ),
        _view("aloud", aloud_mode="addition"),
        {"first": first, "second": second},
    )


def _columns(first: int, second: int, *, carried: bool = True) -> list[tuple[int, int]]:
    """Returns the carry and the digit of each column of a sum, the last column first; without adding the
    carries unless they are `carried`.
    """
    pairs, carry = [], 0
    for a, b in zip(reversed(str(first)), reversed(str(second)), strict=True):
        pairs.append(divmod(int(a) + int(b) + (carry if carried else 0), 10))
        carry = pairs[-1][0]
    return pairs


def _joined(pairs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    return tuple(number for pair in pairs for number in pair)


def majority(rng: Random) -> Exercise:
    percent, votes = rng.randint(52, 90), rng.choice([3, 5])
    p, most = percent / 100, votes // 2 + 1
    each = [math.comb(votes, k) * p**k * (1 - p) ** (votes - k) for k in range(votes + 1)]
    right = 100 * sum(each[most:])
    return Exercise(
        f"A yes-or-no question; each answer a model draws is right with probability {percent}%,"
        f" independently. {votes} are drawn and the majority counts. How often is it right, in percent?",
        Numbers(1, 1, "%"),
        (right,),
        (
            f"At least {most} of {votes} must be right.",
            f"{' + '.join(f'{100 * share:.1f}' for share in each[most:])} = **{right:.1f}%**.",
        ),
        mistakes(
            ((100 * each[-1],), "That is how often *all* are right. A majority is enough."),
            ((100 * (1 - each[0]),), "That is how often *at least one* is right."),
            ((100 * each[most],), "More may be right than a bare majority: add those cases."),
            ((float(percent),), "That is a single answer."),
            ((100 - right,), "That is how often the majority is wrong."),
        ),
        _view("aloud", aloud_mode="attempts"),
        {"percent": percent, "votes": votes},
    )


def chain(rng: Random) -> Exercise:
    percent, steps = rng.choice([80, 85, 90, 95, 98, 99]), rng.randint(4, 16)
    q = percent / 100
    right = 100 * q**steps
    return Exercise(
        f"A model writes {steps} steps; each is right in {percent}% of cases, independently, and one wrong"
        " step spoils the answer. How often are all steps right, in percent?",
        Numbers(1, 1, "%"),
        (right,),
        (
            f"All must be right: ${q}^{{{steps}}}$ = {right / 100:.4f}.",
            f"**{right:.1f}%**. Steps must be far more reliable than the answer.",
        ),
        mistakes(
            ((100 * (1 - steps * (1 - q)),), "Mistakes do not add up: several may coincide."),
            ((100 - right,), "That is how often some step is wrong."),
            ((100 * (1 - (1 - q) ** steps),), "That is how often *at least one* step is right."),
            ((float(percent),), "That is a single step."),
        ),
        _view("aloud"),
        {"percent": percent, "steps": steps},
    )


# Benchmarks ---------------------------------------------------------------------------------------


def answer_scores(rng: Random) -> Exercise:
    tokens = rng.sample([1, 2, 3, 4, 5], 2)
    whole = tuple(-rng.randint(4, 15) for _ in tokens)
    alone = tuple(score - rng.choice([-2, -1, 1, 2, 3, 4, 5, 6]) for score in whole)
    per_token = tuple(score / count for score, count in zip(whole, tokens, strict=True))
    adds = tuple(score - other for score, other in zip(whole, alone, strict=True))
    return Exercise(
        f"Two answers to a question have {tokens[0]} and {tokens[1]} tokens, log-probability {shown(whole)}"
        f" after the question, and {shown(alone)} without it. Give both scores per token, then both scores"
        " for what the question adds (four numbers).",
        Numbers(4, 2),
        (*per_token, *adds),
        (
            "Per token: divide by the answer's tokens. What the question adds: subtract the log-probability"
            " without it.",
            f"{shown(per_token, 2)} and {shown(adds)}: **{shown((*per_token, *adds), 2)}**.",
        ),
        mistakes(
            ((*whole, *adds), "The first two are whole answers. Divide by their tokens."),
            ((*per_token, *(-score for score in adds)), "Subtract the score without the question."),
            ((*adds, *per_token), "You swapped the two kinds of score."),
            (
                (*(s * n for s, n in zip(whole, tokens, strict=True)), *adds),
                "You multiplied by the tokens. A mean divides.",
            ),
        ),
        _view("benchmark"),
        {"tokens": tokens, "whole": list(whole), "alone": list(alone)},
    )


TASKS = (
    ("logit-gradient", "Backpropagation: the logits", logit_gradient),
    ("matrix-gradient", "Backpropagation: a matrix", matrix_gradient),
    ("adamw-step", "Backpropagation: AdamW's first step", adamw_step),
    ("adapter-size", "Fine-tuning: the size of an adapter", adapter_size),
    ("adapter-change", "Fine-tuning: what an adapter changes", adapter_change),
    ("counted-tokens", "Fine-tuning: what the loss counts", counted_tokens),
    ("advantage", "Reward: advantages of a group", advantage),
    ("any-of", "Reward: at least one right", any_of),
    ("penalty", "Reward: the KL penalty", penalty),
    ("margin", "Preferences: the margin", preference_margin),
    ("one-step", "In context: one gradient step", single_step),
    ("best-slope", "In context: least squares", best_slope),
    ("step-size", "In context: the best step size", step_size),
    ("running-parity", "Chain of thought: the running parity", running_parity),
    ("column-carries", "Chain of thought: carries of a sum", column_carries),
    ("majority", "Best of n: a majority vote", majority),
    ("chain", "Chain of thought: all steps right", chain),
    ("answer-scores", "Benchmark: scores of an answer", answer_scores),
)
