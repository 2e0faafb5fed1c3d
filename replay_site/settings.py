"""Settings of the product. Everything that differs between places comes from the environment (see README)."""

from __future__ import annotations

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
REPRISE_HOME = Path(os.environ.get("REPRISE_HOME", BASE_DIR / "var"))
SECRET_KEY = "set-by-the-viewing-room"
DEBUG = False
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "cassettes"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(REPRISE_HOME / "reprise.sqlite3")}}
USE_TZ = True
