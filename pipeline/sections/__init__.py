"""Building blocks of the configuration's sections: kinds of values, secrets, a server and its limits."""
