"""What `guichet demo` serves: two demo merchants, a month of sales, and people who sign in without passwords."""
