"""For people in a browser and for programs: the answers of the wings above, served."""
