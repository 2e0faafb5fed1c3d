"""The addresses of pages."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from cassettes import views

urlpatterns = [
    path("", views.catalog_list, name="catalog"),
    path("uploads/", views.upload, name="upload"),
    path("uploads/<str:upload_id>/", views.upload_job, name="upload-job"),
    path("uploads/<str:upload_id>/decision/", views.decide_upload, name="decide-upload"),
    path("compare/", views.compare, name="compare"),
    path("compare/viewings/", views.open_comparison, name="open-comparison"),
    path("cassettes/<str:cassette_id>/", views.cassette, name="cassette"),
    path("cassettes/<str:cassette_id>/viewings/", views.open_viewing, name="open-viewing"),
    path("cassettes/<str:cassette_id>/download/<str:kind>/", views.download, name="download"),
    path("cassettes/<str:cassette_id>/size/", views.size, name="size"),
    path("cassettes/<str:cassette_id>/delete/", views.delete, name="delete"),
    path("cassettes/<str:cassette_id>/links/", views.create_link, name="create-link"),
    path("cassettes/<str:cassette_id>/links/<int:link_id>/revoke/", views.revoke_link, name="revoke-link"),
    path("review/<str:token>/", views.review, name="review"),
    path("review/<str:token>/viewings/", views.open_review_viewing, name="open-review-viewing"),
    path("sign-in/", LoginView.as_view(template_name="sign_in.html", redirect_authenticated_user=True), name="sign-in"),
    path("sign-out/", LogoutView.as_view(), name="sign-out"),
]
