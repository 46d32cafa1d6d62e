"""Wrong texts, columns, scores and labels, with what must be said."""

from tests.wrong_entry import Wrong, a_set, block, labels, run_with, scores
from tests.wrong_files import LINE

TEXTS = [
    a_set(
        "a number where a text belongs",
        "bad.jsonl",
        LINE + b'{"anchor": 7, "positive": "b"}\n',
        "bad.jsonl, line 2: anchor needs a text, column 'anchor' has 7",
        "set policy.wrong_text of this set to drop",
    ),
    a_set(
        "an object where a text belongs",
        "bad.jsonl",
        LINE + b'{"anchor": {"text": "a"}, "positive": "b"}\n',
        "bad.jsonl, line 2: anchor needs a text, column 'anchor' has {'text': 'a'}",
    ),
    a_set(
        "a number among negatives",
        "bad.jsonl",
        LINE.replace(b"}", b', "negative": ["x"]}') + LINE.replace(b"}", b', "negative": [1]}'),
        "bad.jsonl, line 2: negative needs a text or a list of texts, column 'negative' has [1]",
    ),
    a_set(
        "rows with more negatives than the first",
        "bad.jsonl",
        LINE.replace(b"}", b', "negative": ["x"]}') + LINE.replace(b"}", b', "negative": ["x", "y"]}'),
        "bad.jsonl, line 2: expected 1 negatives as in the rows before, found 2",
    ),
    a_set(
        "nothing but empty texts",
        "bad.csv",
        "anchor,positive\n,a\n  ,b\n",
        "no row is left: 2 rows read, 0 kept (2 dropped: empty anchor)",
    ),
    a_set(
        "an empty text where the policy is to refuse",
        "bad.csv",
        "anchor,positive\na,b\n,c\n",
        "bad.csv, line 3: anchor needs a text, column 'anchor' has ''; correct the row, or set policy.empty_text of "
        "this set to drop or keep",
        more="policy: {empty_text: refuse}",
    ),
    a_set(
        "a null where the policy is to refuse",
        "bad.jsonl",
        LINE + b'{"anchor": null, "positive": "c"}\n',
        "bad.jsonl, line 2: anchor needs a text, column 'anchor' has None",
        more="policy: {empty_text: refuse}",
    ),
    a_set(
        "one row of pairs",
        "bad.csv",
        "anchor,positive\na,b\n",
        "data set bad: expected at least two rows, for the texts of other rows are the negatives, found 1",
    ),
    Wrong(
        "fewer rows than a full batch takes",
        ("data set pairs: its 4 rows do not fill the 8", "lower train.per_device_train_batch_size"),
        config=run_with(train="{max_steps: 1, per_device_train_batch_size: 8, dataloader_drop_last: true}"),
    ),
]

COLUMNS = [
    a_set(
        "no column with the name of a role", "bad.csv", "question,answer\na,b\n",
        "no column bears a role's name; map columns to roles, such as `columns: {anchor: …, positive: …}`",
        "columns found: 'question', 'answer'",
    ),
    a_set(
        "the name of a role with a space before it", "bad.csv", "anchor, positive\na,b\n",
        "bad.csv: the name of a role has white space around it; did you mean `columns: {positive: \" positive\"}`?",
    ),
    a_set(
        "names of roles in capitals", "bad.csv", "Anchor,POSITIVE\na,b\n",
        "bad.csv: no column bears a role's name; did you mean `columns: {anchor: \"Anchor\", positive: \"POSITIVE\"}`?",
    ),
    a_set(
        "a mapped column that is not there", "bad.csv", "question,positive\na,b\n",
        "columns: anchor: there is no column 'questoin' (did you mean 'question'?); columns found: ",
        more="columns: {anchor: questoin}",
    ),
    a_set(
        "a role that the objective needs", "bad.csv", "anchor,negative\na,b\nc,d\n",
        "data set bad: objective in_batch_negatives needs the roles anchor, positive; missing: positive; found: ",
        "Name the columns that hold them under `columns`",
    ),
    a_set(
        "a filter on a column that is not there", "bad.csv", "anchor,positive,lang\na,b,en\n",
        "where: there is no column 'language' (did you mean 'lang'?)", more="where: {language: en}",
    ),
    a_set(
        "a filter that no row passes", "bad.csv", "anchor,positive,lang\na,b,en\n",
        "no row is left: 1 row read, 0 kept (1 filtered by where); where: lang must be 'de' and was 'en'",
        more="where: {lang: de}",
    ),
    a_set(
        "a filter on a column of lists", "bad.jsonl", LINE.replace(b"}", b', "tags": ["x"]}'),
        "where: tags must hold single values; bad.jsonl, line 1 has ['x']", more="where: {tags: x}",
    ),
    a_set(
        "a split of a file", "bad.csv", "anchor,positive\na,b\n",
        "split: a file is one split; leave `split` out", more="split: test",
    ),
    a_set(
        "a subset of a file", "bad.csv", "anchor,positive\na,b\n",
        "subset: only Hub data sets have subsets", more="subset: en",
    ),
    a_set(
        "a score range without scores", "bad.csv", "anchor,positive\na,b\n",
        "bad.csv: score_range: there is no column for the role score; map one or leave score_range out",
        more="score_range: [0, 5]",
    ),
    a_set(
        "names of labels without labels", "bad.csv", "anchor,positive\na,b\n",
        "bad.csv: labels: there is no column for the role label; map one or leave labels out", more="labels: [a, b]",
    ),
    block("a file that is not there", "data", "{train: [{source: pears.csv}]}",
          "data set pears: no such file: pears.csv (did you mean 'pairs.csv'?)"),
    block("a glob that matches nothing", "data", "{train: [{source: 'x*.csv', name: x}]}",
          "data set x: no file matches x*.csv; data files in "),
    block("a folder as source", "data", "{train: [{source: ./model}]}", "is a folder; name its files, such as"),
    block("an address as source", "data", "{train: [{source: 'https://host/pairs.csv'}]}",
          "is an address; download it and give the path"),
    block("a builtin set that there is not", "data", "{train: [{source: 'builtin:contrasts'}]}",
          "there is no builtin data set 'contrasts' (did you mean 'contrast'?)"),
    block("a split that a builtin set lacks", "data", "{train: [{source: 'builtin:contrast', split: valid}]}",
          "builtin:contrast has no split 'valid' (did you mean 'validation'?)"),
    Wrong("files of several formats in one glob", ("a.* matches files of several formats, '.csv', '.jsonl'",),
          {"a.csv": "anchor,positive\na,b\n", "a.jsonl": LINE},
          run_with(data="{train: [{source: a.*, name: a}]}")),
    Wrong("files of one set with different roles",
          ("b2.csv: its columns are for the roles 'anchor', those of b1.csv for 'anchor', 'positive'; the files",),
          {"b1.csv": "anchor,positive\na,b\n", "b2.csv": "anchor\na\n"},
          run_with(data="{train: [{source: 'b?.csv', name: b}]}")),
    Wrong("several files of one set, each with something wrong",
          ("sbert-train: data set b: b1.csv, line 3: expected 2 fields as in the header, found 1",
           "\ndata set b: b2.csv, line 2: byte 0xf6 is not UTF-8",
           "\ndata set b: b4.csv: its columns are for the roles 'anchor', those of b1.csv for 'anchor', 'positive'"),
          {"b1.csv": "anchor,positive\na,b\nc\n", "b2.csv": b"anchor,positive\nzw\xf6lf,b\n",
           "b3.csv": "anchor,positive\na,b\n", "b4.csv": "anchor\na\n"},
          run_with(data="{train: [{source: 'b?.csv', name: b}]}"), lines=3),
]  # fmt: skip

SCORES = [
    scores("a score that is no number", "the dog,a dog,high\n",
           "bad.csv, line 3: score needs a finite number, column 'score' has 'high'; correct the row, or set "
           "policy.wrong_score of this set to drop"),
    scores("an empty score", "the dog,a dog,\n", "bad.csv, line 3: score needs a finite number, column 'score' has ''"),
    scores("a score that is not a number by IEEE 754", "the dog,a dog,nan\n",
           "bad.csv, line 3: score needs a finite number"),
    scores("an infinite score", "the dog,a dog,-inf\n", "bad.csv, line 3: score needs a finite number"),
    scores("a score with a decimal comma", 'the dog,a dog,"4,5"\n',
           "score needs a finite number, column 'score' has '4,5'"),
    scores("a score above its range", "the dog,a dog,5.01\nthe man,a man,9\n",
           "bad.csv, line 3: score '5.01' is outside score_range [0, 5] (widen it, if the score is right); correct the "
           "row, or set policy.score_out_of_range of this set to drop or keep (2 of the first 3 rows have this)"),
    scores("a score that is no number and one out of its range", "the dog,a dog,x\nthe man,a man,99\n",
           "sbert-train: data set bad: bad.csv, line 3: score needs a finite number, column 'score' has 'x'",
           "\ndata set bad: bad.csv, line 4: score '99' is outside score_range [0, 5]", lines=2),
    scores("a score below its range", "the dog,a dog,-1\n", "line 3: score '-1' is outside score_range [0, 5]"),
    scores("scores that no cosine can be", "the dog,a dog,3\n",
           "data set bad: its scores reach from 3 to 5, but objective cosine_regression takes -1 to 1; set score_range",
           more=""),
    scores("the same score in all rows", "the dog,a dog,5\n", "expected different scores, found 1 (as `score_range`"),
    Wrong("the same score in all rows of an eval set",
          ("eval set 'bad': expected at least two different scores, found 3 rows with score 0.2 (as `score_range` maps "
           "it to 0..1, if it is set); check `where`",),
          {"bad.csv": "sentence1,sentence2,score\na,b,1\nc,d,1\ne,f,1\n"},
          run_with(data="{train: [{source: pairs.csv}], eval: [{source: bad.csv, task: sts, score_range: [0, 5]}]}")),
    a_set("true as a score", "bad.jsonl", '{"sentence1": "a", "sentence2": "b", "score": true}\n',
          "bad.jsonl, line 1: score needs a finite number, column 'score' has True", objective="cosent"),
    a_set("null as a score", "bad.jsonl", '{"sentence1": "a", "sentence2": "b", "score": null}\n',
          "score needs a finite number, column 'score' has None", objective="cosent"),
    a_set("two scores where the objective takes one", "bad.jsonl",
          '{"sentence1": "a", "sentence2": "b", "score": [1, 2]}\n',
          "objective cosent takes one score a row, found 2; map one column to score", objective="cosent"),
]  # fmt: skip

LABELS = [
    labels("a label in words without their names", "the dog,a tree,neutral\n",
           "bad.csv, line 3: label needs a whole number (name classes in words by `labels`",
           "column 'label' has 'neutral' after '1' in line 2", "set policy.wrong_label of this set to drop"),
    labels("a label that is not among the names", "the dog,a tree,maybe\n",
           "bad.csv, line 2: label needs one of the names in `labels`, 'no', 'yes'", more="labels: ['no', 'yes']"),
    labels("a label that is no whole number", "the dog,a tree,0.5\n", "line 3: label needs a whole", "has '0.5'"),
    labels("labels of mixed kinds", "the dog,a tree,0\nthe man,a man,true\n",
           "bad.csv, line 4: label needs labels of one kind, column 'label' has 'true' after '1' in line 2"),
    labels("a label that no machine holds", "the dog,a tree,9223372036854775808\n", "line 3: label needs a whole"),
    labels("an unlabelled row where the policy is to refuse", "the dog,a tree,-1\n",
           "bad.csv, line 3: label needs a class, column 'label' has '-1'; correct the row, or set policy.unlabelled "
           "of this set to drop", more="policy: {unlabelled: refuse}"),
    labels("one label in all rows", "the dog,a dog,1\n", "expected at least two different labels, found 1"),
    labels("labels far apart", "the dog,a tree,900\n", "expected the labels 0, 1, 2, ...", "number the classes from 0"),
    labels("a label below zero", "the dog,a tree,-2\n", "takes the labels 0, 1, 2, ..., found -2, 1"),
    a_set("three labels where two are taken", "bad.csv",
          "sentence1,sentence2,label\na,b,0\nc,d,1\ne,f,2\n", "takes the labels 0 and 1, found 0, 1, 2",
          objective="contrastive"),
    a_set("mixed kinds of labels in JSON", "bad.jsonl",
          '{"sentence1": "a", "sentence2": "b", "label": false}\n{"sentence1": "c", "sentence2": "d", "label": 1}\n',
          "bad.jsonl, line 2: label needs labels of one kind, column 'label' has 1 after False in line 1",
          objective="contrastive"),
]  # fmt: skip

WRONG_DATA = [*TEXTS, *COLUMNS, *SCORES, *LABELS]
