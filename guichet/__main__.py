from guichet.cli import main

main()
