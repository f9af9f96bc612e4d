"""The command line: words in, words out. What a command does is in the packages below.

    main           the commands' names; imports the one that was chosen
    commands/      a module for each command: its options, its help, its few lines of work
    options/       options that several commands share
    render/        how results look: text, tables, progress, maps
    record_input   what publish and subscribe share: records from a file or pipe
    job_board      what a job that runs here has to say of itself
    interrupts     Ctrl-C at a moment that suits the work
    exit_codes     what exit codes say
    spark_log      where to look when Spark fails: kept then, and removed otherwise

Results go to stdout, as text or as JSON lines; everything about them goes to stderr.
"""
