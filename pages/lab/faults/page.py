"""The bug lab: what each mistake costs, and which checks would have caught it."""

from engine.experiments.bug_races import compare_twins, specs
from engine.lab.doctor.case import relative_difference
from engine.lab.doctor.checks import examine
from engine.lab.doctor.forward import sees_the_future
from engine.lab.doctor.over_training import what_it_writes
from engine.lab.doctor.start import gradients_by_block, stream_gradients
from engine.lab.doctor.story import play, unscaled
from engine.lab.doctor.table import case_of
from engine.lab.faults import Fault
from engine.lab.faults.masks import transposed_mask
from pages.lab.faults import words, words_doctor
from pages.lab.faults.cost import draw_cost, fault_words
from pages.lab.faults.doctor import draw_doctor
from pages.lab.faults.patient import draw_patient
from pages.lab.faults.story import draw_story
from ui.model_needs import CHECKS
from ui.page_frame import Page, View, show

Q = words_doctor.QUESTIONS
show(
    Page(
        "Bug lab",
        "bugs_view",
        (
            View(
                "cost",
                "Cost",
                draw_cost,
                fault_words,
                (Fault, specs, compare_twins),
                needs_model=False,
                question=words.QUESTIONS["cost"],
            ),
            View(
                "doctor",
                "Diagnose",
                draw_doctor,
                words_doctor.DOCTOR,
                (examine, sees_the_future, gradients_by_block, relative_difference),
                brings_text=True,
                question=Q["doctor"],
                takes=(CHECKS,),
            ),
            View(
                "patient",
                "Mystery patient",
                draw_patient,
                words_doctor.PATIENT,
                (what_it_writes, case_of),
                needs_model=False,
                question=Q["patient"],
            ),
            View(
                "story",
                "Case study",
                draw_story,
                words_doctor.STORY,
                (play, transposed_mask, unscaled, stream_gradients),
                needs_model=False,
                question=Q["story"],
            ),
        ),
    )
)
