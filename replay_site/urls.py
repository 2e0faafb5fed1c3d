"""The addresses of the product."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from cassettes.api import api

urlpatterns = [
    path("", include("cassettes.urls")),
    path("api/", api.urls),
    path("admin/", admin.site.urls),
]

handler400 = "cassettes.views.bad_request"
handler403 = "cassettes.views.forbidden"
handler404 = "cassettes.views.not_found"
handler500 = "cassettes.views.server_error"
