"""Makes a release and proves it: wheels for every Python, bills of materials, the image, the checks."""
