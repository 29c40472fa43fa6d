"""Frames and files of any kind become Arrow columns; canonical values of their cells."""
