"""What a release is made of, and what refuses to make one."""
