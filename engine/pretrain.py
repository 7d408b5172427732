"""Trains what comes with the app: `python -m engine.pretrain NAME`.

NAME is `ladder` (engine.training.ladder), `races` (engine.service.lab_races), `pairs`
(engine.training.pairs), `paired` (engine.training.pretrain_paired), `cast` (engine.training.cast) or one of
the models of engine.training.pretrain.
"""

from __future__ import annotations

import sys

from engine.service import lab_races
from engine.training import cast, ladder, pairs, pretrain, pretrain_paired


def main() -> None:
    commands = {
        "ladder": ladder.main,
        "races": lab_races.main,
        "pairs": pairs.main,
        "paired": pretrain_paired.main,
        "cast": cast.main,
    }
    if sys.argv[1:2] and sys.argv[1] in commands:
        commands[sys.argv[1]](sys.argv[2:])
    else:
        pretrain.main()


if __name__ == "__main__":
    main()
