"""Games in other processes: actors play them for a learner, which fills its memory with them.

A learner has an `ActorGroup` and fills a memory by a `RemoteSimulator`; each of the other processes
calls `play_for_learner`. What sets the weights of a network, and the callback that lets the actors
begin, are the program's, such as those in expreplay.py of examples/DeepQNetwork.
"""
