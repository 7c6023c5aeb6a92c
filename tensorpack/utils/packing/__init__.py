"""Objects to bytes and back: what crosses pipes and sockets, and what files hold."""
