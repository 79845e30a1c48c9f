from __future__ import annotations

from django.urls import path

from lighthouse import views

app_name = "lighthouse"
urlpatterns = [
    path("", views.coast, name="coast"),
    path("storm/", views.set_storm, name="storm"),
    path("storm/cut/", views.order_cable_cut, name="cut"),
    path("postcards/<int:pk>.svg", views.postcard, name="postcard"),
    path("seascapes/<int:pk>.svg", views.seascape, name="seascape"),
]
