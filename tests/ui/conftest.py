"""What the tests of ui/ share with those of pages."""

from tests.pages.conftest import packages_are_scanned_once as packages_are_scanned_once
