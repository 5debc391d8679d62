"""Which commit changed a figure: bisection by runs of `hil run`."""
