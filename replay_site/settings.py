"""Settings of the product. Everything that differs between places comes from the environment (see README)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from replay_site.secret import secret_key


def _flag(name: str, default: bool = False) -> bool:
    return os.environ.get(name, "1" if default else "0").strip().lower() in {"1", "true", "yes", "on"}


def _names(name: str) -> list[str]:
    return [part.strip() for part in os.environ.get(name, "").split(",") if part.strip()]


BASE_DIR = Path(__file__).resolve().parent.parent
TESTING = "pytest" in sys.modules

# ---------------------------------------------------------------------------------------------- where things are
REPRISE_HOME = Path(os.environ.get("REPRISE_HOME") or BASE_DIR / "var").resolve()
SECRET_KEY = os.environ.get("REPRISE_SECRET_KEY") or secret_key(REPRISE_HOME / "secret-key")
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(REPRISE_HOME / "reprise.sqlite3"),
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",  # a transaction that will write waits at its start, and never fails later
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
        "TEST": {"NAME": str(REPRISE_HOME / "test.sqlite3")},  # a file: upload jobs run in their own threads
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CHANNEL_LAYERS: dict[str, Any] = {
    "default": {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 1000}}
}

# ---------------------------------------------------------------------------------------------- who may come in
DEBUG = _flag("REPRISE_DEBUG")
LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
ALLOWED_HOSTS = _names("REPRISE_HOSTS") or LOOPBACK_HOSTS
ON_LOOPBACK = set(ALLOWED_HOSTS) <= set(LOOPBACK_HOSTS)
REPRISE_OPEN = _flag("REPRISE_OPEN")
if REPRISE_OPEN and not ON_LOOPBACK:
    raise ImproperlyConfigured("REPRISE_OPEN lets everybody in as an admin: it cannot be used with REPRISE_HOSTS.")
HTTPS = _flag("REPRISE_HTTPS", default=not ON_LOOPBACK)
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS] if HTTPS else []
if _flag("REPRISE_BEHIND_PROXY"):  # the proxy must set the header itself and drop what a client sent
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "catalog"
LOGOUT_REDIRECT_URL = "sign-in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
if TESTING:
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# ---------------------------------------------------------------------------------------------- what is installed
INSTALLED_APPS = [
    "daphne",  # first: it takes over `runserver`
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "replay_site.apps.Static",
    "channels",
    "csp",
    "cassettes",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "replay_site.middleware.PrivateAnswers",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "replay_site.middleware.OpenHouse",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "replay_site.urls"
ASGI_APPLICATION = "replay_site.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False

# ---------------------------------------------------------------------------------------------- static files
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = BASE_DIR / "static" if TESTING else Path(os.environ.get("REPRISE_STATIC") or BASE_DIR / "staticfiles")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if TESTING
        else "replay_site.storage.HashedStatic"
    },
}

# ---------------------------------------------------------------------------------------------- limits of uploads
REPRISE_MAX_UPLOAD = 384 * 1024 * 1024  # bytes; the largest Cassette there can be
REPRISE_MAX_BODY = 1024 * 1024  # bytes of every other request
DATA_UPLOAD_MAX_MEMORY_SIZE = REPRISE_MAX_BODY
FILE_UPLOAD_HANDLERS = ["cassettes.uploads.BudgetHandler", "django.core.files.uploadhandler.TemporaryFileUploadHandler"]
DATA_UPLOAD_MAX_NUMBER_FILES = 8

# ---------------------------------------------------------------------------------------------- browsers
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "worker-src": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_HTTPONLY = True  # pages carry the token themselves
CSRF_FAILURE_VIEW = "cassettes.views.csrf_failure"

# ---------------------------------------------------------------------------------------------- logging
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": os.environ.get("REPRISE_LOG", "WARNING").upper()},
    "loggers": {
        "django": {"handlers": ["console"], "level": "WARNING", "propagate": False},
        "django.server": {"handlers": ["console"], "level": "WARNING", "propagate": False},
        "cassettes": {"level": os.environ.get("REPRISE_LOG", "INFO").upper()},
    },
}
