"""What can be typed, where several commands share it?

    home, input_file, output_file   which deployment; where records come from; where results go
    arguments                       the notation of points, regions, counts and seconds
    settings, adjustment            ``ps2stream.Settings`` as options, and back
    metrics                         where Prometheus finds a job
    usage                           a value that only the settings can judge is wrong usage, too

Open ``settings`` first: each option names the field that it sets. Only notation is checked here; whether a
number makes sense is for the model and the settings to say, in one place for the command line and Python.
"""
