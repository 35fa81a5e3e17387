"""What `guichet doctor` looks at."""
