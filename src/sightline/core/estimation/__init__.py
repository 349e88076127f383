"""What the data say: least squares, with and without a regulariser."""
