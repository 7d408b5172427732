"""Where phones answer what a lecturer asks. In no menu."""

from pages.stage.room import room

if __name__ == "__main__":
    room.draw()
