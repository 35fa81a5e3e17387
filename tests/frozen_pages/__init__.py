"""What every page and command shows, frozen while the code is moved. Temporary: it goes when the move is done."""
