"""What a finished run tells: verdict, page, comparisons."""
