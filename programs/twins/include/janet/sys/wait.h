/* Janet includes this header, and uses none of it without processes. */
