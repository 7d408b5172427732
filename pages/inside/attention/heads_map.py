"""The head that the views of Attention look at, and the colours of heads."""

TOPIC = "attention"  # of the head that is looked at, in all views: see `widgets.head`
HEAD_COLOURS = ("attention", "run0", "validation", "run1", "run2", "run4", "run3", "run5")
