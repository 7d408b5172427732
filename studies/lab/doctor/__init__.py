"""The doctor: checks that would have caught a bug, run on any model and any training.

    from studies.lab.doctor.checks import examine

    for finding in finish(examine(case)):
        print(finding.check, finding.verdict, finding.sentence)

Each check does one small experiment and holds one number against one limit. None of them knows how a model
was made: they see only what it does, and what it was meant to be.
"""
