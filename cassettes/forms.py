"""What people fill in."""

from __future__ import annotations

from django import forms

from cassettes.core.manifest import MAX_NAME

_TIMES = [("1h", "1 hour"), ("1d", "1 day"), ("7d", "7 days"), ("30d", "30 days")]  # keys of `catalog.LINK_TIMES`


class LinkForm(forms.Form):
    """A new review link."""

    label = forms.CharField(max_length=MAX_NAME, required=False, label="For whom or what (optional)")
    expires = forms.ChoiceField(choices=_TIMES, initial="7d", label="Expires after")


class UploadForm(forms.Form):
    """An upload without script."""

    file = forms.FileField(allow_empty_file=True)
    name = forms.CharField(max_length=MAX_NAME, required=False)
