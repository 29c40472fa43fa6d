"""What a person gives: files and frames of any make, as Arrow columns; what their cells mean."""
