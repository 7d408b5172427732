"""Questions of a small benchmark: general knowledge and common sense, four options each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """A question with its options, of which the first is right. The `paraphrase` asks for the same; `other`
    asks for something else, to which option `right_of_other` is the answer.
    """

    question: str
    paraphrase: str
    other: str
    options: tuple[str, ...]
    right_of_other: int = 0


def _item(text: str) -> Item:
    """Reads "question | paraphrase | other | right | wrong | wrong | wrong", the other's answer with a *."""
    question, paraphrase, other, *options = (part.strip() for part in text.split("|"))
    starred = [option.startswith("*") for option in options]
    return Item(
        question,
        paraphrase,
        other,
        tuple(option.removeprefix("*") for option in options),
        starred.index(True) if any(starred) else 0,
    )


ITEMS = tuple(
    _item(line)
    for line in """\
What do bees make? | Which food comes from a beehive? | What do silkworms make?
    | honey | *silk | cow's milk | bread
What is the capital of France? | In which city does the French president live? | What is the capital of Spain?
    | Paris | London | *Madrid | Berlin
What does a thermometer measure? | For which quantity do you need a thermometer? | What does a clock measure?
    | temperature | weight | *time | the speed of the wind
Which planet is closest to the Sun? | Which planet has the smallest orbit? | Which planet is the largest?
    | Mercury | Mars | *Jupiter | Neptune
Why do people wear coats in winter? | What is a thick coat good for in the snow?
    | Why do people wear sunglasses?
    | to keep warm | *to protect their eyes from the light | to run faster | to hear better
What happens to water at 100 degrees Celsius? | You heat a pot of water to 100 degrees. What does it do?
    | What happens to water below 0 degrees Celsius?
    | it boils | *it freezes | it turns into salt | it burns
How many legs does a spider have? | You count the legs of a spider. What number do you get?
    | How many legs does an insect have?
    | eight | *six | four | two
What is the largest animal on Earth? | No animal is heavier than which? | What is the tallest animal on Earth?
    | the blue whale | the African elephant | *the giraffe | the polar bear
What do plants take from the air to grow? | Which gas do green leaves need for photosynthesis?
    | What do people need from the air to live?
    | carbon dioxide | *oxygen | helium | smoke
Who wrote Romeo and Juliet? | Romeo and Juliet is a play by which author? | Who wrote Pride and Prejudice?
    | William Shakespeare | Charles Dickens | *Jane Austen | Mark Twain
Where do you go to borrow books? | Which place lends you a novel? | Where do you go to buy bread?
    | a library | *a bakery | a hospital | a railway station
What do you use to cut paper? | Which tool makes two halves of a sheet of paper?
    | What do you use to drive a nail into a wall?
    | scissors | a spoon | *a hammer | a blanket
Which season comes after spring? | Spring is over. What season begins? | Which season comes after summer?
    | summer | *autumn | winter | Christmas
What is frozen water called? | Which solid do you get from water in a freezer?
    | What is water called when it has become a gas?
    | ice | *steam | fog | sand
Where does the Sun rise? | In the morning, on which side of the sky is the Sun? | Where does the Sun set?
    | in the east | *in the west | in the north | in the south
Which organ pumps blood through the body? | What part of you beats and moves your blood?
    | Which organ do people think with?
    | the heart | the lungs | the stomach | *the brain
What is the chemical symbol of gold? | How does a chemist write gold? | What is the chemical symbol of iron?
    | Au | Ag | Go | *Fe
How many minutes are in an hour? | One hour lasts how many minutes? | How many hours are in a day?
    | sixty | *twenty-four | one hundred | twelve
What should a driver do at a red light? | The traffic light is red. What does a careful driver do?
    | What should a driver do at a green light?
    | stop and wait | *drive on | get out of the car | close the windows
Why should you not touch a hot stove? | What might happen if you lay your fingers on a hot stove?
    | Why should you not leave the fridge open?
    | you could burn your hand | *the food would get warm | you could fall asleep | it could fly away
""".replace("\n    |", " |").splitlines()
)
# Before a question, in this order: each with the letter of its answer.
EXAMPLES = (
    (_item("What colour is the sky on a clear day? | | | blue | green | red | black"), "B"),
    (_item("What do cows eat? | | | grass | meat | stones | paper"), "D"),
    (_item("Which day comes after Monday? | | | Tuesday | Friday | Sunday | Saturday"), "A"),
)
