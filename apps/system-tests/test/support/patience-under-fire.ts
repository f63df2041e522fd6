/** Whatever is killed has to come back before anything goes on. */
process.env["MILLWRIGHT_PATIENCE"] = "3";
