"""What the UI shows of a day and of a run over many days: sentences, tables and charts."""
