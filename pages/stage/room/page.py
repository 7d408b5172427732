"""Where phones answer what a lecturer asks. In no menu."""

from pages.stage.room import room

room.draw()
