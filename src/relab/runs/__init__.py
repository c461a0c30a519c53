"""Many runs kept in order: what each one is at a glance, its labels, where it is moved to, how much disk it takes."""
