"""The bug lab: what each mistake costs, and which checks would have caught it."""

from pages.lab.faults import case_study, cost, diagnose, mystery_patient
from ui.page_frame import Page, show

PAGE = Page("Bug lab", "bugs_view", (cost.VIEW, diagnose.VIEW, mystery_patient.VIEW, case_study.VIEW))

if __name__ == "__main__":
    show(PAGE)
