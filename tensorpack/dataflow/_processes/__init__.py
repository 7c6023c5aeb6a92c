"""What dataflows in worker processes are made of: shared memory, teams of workers, their orders."""
