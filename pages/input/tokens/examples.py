"""Texts to learn merges from, and texts to compare tokenizers with."""

LINE = "First Citizen:\nBefore we proceed any further, hear me speak.\n"

# Texts in which merges are watched
MERGES = {
    "Sea shells": (
        "She sells sea shells by the sea shore.\nThe shells that she sells are sea shells, I'm sure.\nSo if"
        " she sells sea shells on the sea shore,\nI'm sure that the shells are sea shore shells.\n"
    ),
    "lowest, newest": (
        "low low low low low lower lower newest newest newest newest newest newest widest widest widest"
    ),
    "Code": (
        "for i in range(10):\n    if i % 2 == 0:\n        print(i, i ** 2)\n    else:\n        print(i, i **"
        " 3)\n\nfor j in range(10):\n    print(j, j ** 2)\n"
    ),
    "Languages": (
        "The cat sits on the mat. The dog sits beside the cat.\n那只猫坐在垫子上。那只狗坐在猫旁边。\nबिल्ली"
        " चटाई पर बैठी है। कुत्ता बिल्ली के पास बैठा है।\n\u0627\u0644\u0642\u0637\u0629"
        " \u062a\u062c\u0644\u0633 \u0639\u0644\u0649 \u0627\u0644\u0633\u062c\u0627\u062f\u0629."
        " \u0627\u0644\u0643\u0644\u0628 \u064a\u062c\u0644\u0633 \u0628\u062c\u0627\u0646\u0628"
        " \u0627\u0644\u0642\u0637\u0629.\n"
    ),
    "Emoji": (
        "🎉 party 🎉 party 🎉\nfamily 👩\u200d👩\u200d👧 and family 👨\u200d👩\u200d👦, thumbs 👍 👍🏽"
        " 👍🏿\ncafe\u0301 and café look alike\n"
    ),
    "aaaa": "aaaa aaaaa aaaaaaa abab ababab abababab",
}

# Texts to compare tokenizers with: all sentences are our own, but the first.
EXAMPLES = {
    "First Citizen": LINE,
    "An é": "To be or not to bé",
    "Languages": (
        "A language model reads numbers, not letters.\nEin Sprachmodell liest Zahlen, keine Buchstaben.\n"
        "Un modèle de langue lit des nombres, pas des lettres.\nЯзыковая модель читает числа, а не буквы.\n"  # noqa: RUF001
        "भाषा मॉडल अक्षर नहीं, संख्याएँ पढ़ता है।\n语言模型读的是数字，而不是字母。\n"  # noqa: RUF001
        "言語モデルが読むのは文字ではなく数字です。\n"
        "نموذج اللغة يقرأ الأرقام لا الحروف."
    ),
    "Sums": (
        "7 + 5 = 12\n127 + 677 = 804\n1275 + 6773 = 8048\n12345678 + 1 = 12345679\n3.14159 is not 3,141,590"
    ),
    "Capitals": "hello Hello HELLO\nhello\n hello\n  hello\nthe The THE\nNew York, new york, NEW YORK",
    "Code": (
        "def mean(values):\n    total = 0\n    for value in values:\n        if value is not None:\n     "
        "       total += value\n    return total / len(values)\n"
    ),
    "Emoji": "👍 👍🏽 👋🏿\n👩‍👩‍👧‍👦 👨‍🚀\n🇩🇪 🇯🇵 🇧🇷\n❤️ 🙂 ☕",
    "Names": "Nebuchadnezzar met Xiomara Okonkwo-Szczepańska in Llanfairpwllgwyngyll.",
}
