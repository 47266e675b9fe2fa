"""The paper's nine data sets by name: classes, splits, counts and origin."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

# Which classes of the sorted list a split takes (CrossDomainFewShot's rule).
_BY_INDEX = {
    "train": slice(0, None, 2),
    "val": slice(1, None, 4),
    "test": slice(3, None, 4),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dataset:
    """What is known of one data set.

    Attributes:
      name: The name it is asked for by.
      title: Its full name.
      origin: Where to get it.
      layout: The files expected in its folder.
      classes: Classes of the complete data set, over all splits.
      partition: How classes become splits. ``index``: by position in the sorted list
        (train: even, val: 1 mod 4, test: 3 mod 4). ``whole``: all classes are test
        classes. ``given``: the data set comes split.
      split_classes: Classes a split, where the data set comes split.
      images: Images of the complete data set.
      per_class: Images a class, where all have as many.
      tolerance: Share by which counts may differ, where releases do.
      containers: Folders inside its folder that may hold the classes; it may itself.
      first: Only the first so many images of a class are used.
      largest: Only the ``classes`` largest classes are used.
      tfds: Name in TFDS's catalogue.
      tfds_split: The TFDS splits that hold its images.
      tfds_keep: A TFDS class feature and the value to keep.
      tfds_images: Images there, where that differs.
    """

    name: str
    title: str
    origin: str
    layout: str
    classes: int
    partition: Literal["index", "whole", "given"]
    split_classes: Mapping[str, int] | None = None
    images: int | None = None
    per_class: int | None = None
    tolerance: float = 0.0
    containers: tuple[str, ...] = ()
    first: int | None = None
    largest: bool = False
    tfds: str | None = None
    tfds_split: str = "train"
    tfds_keep: tuple[str, str] | None = None
    tfds_images: int | None = None

    def size(self, split: str) -> int:
        """Number of classes in a split, or in ``all``.

        >>> DATASETS["cub"].size("test"), DATASETS["places"].size("test")
        (50, 91)
        """
        if split == "all" or self.partition == "whole":
            return self.classes
        if self.split_classes:
            return self.split_classes[split]
        return len(self.members(split))

    def members(self, split: str) -> range:
        """Positions of a split's classes in the sorted list of all classes.

        >>> DATASETS["cub"].members("test")[:3]
        range(3, 15, 4)
        """
        if split == "all" or self.partition == "whole":
            return range(self.classes)
        return range(self.classes)[_BY_INDEX[split]]


_ALL = (
    Dataset(
        name="miniimagenet",
        title="miniImageNet (Ravi and Larochelle's classes)",
        origin="https://image-net.org (images), "
        "https://github.com/twitter-research/meta-learning-lstm (csv)",
        layout="{train,val,test}/<class>/*.jpg, or {train,val,test}.csv and images/",
        classes=100,
        partition="given",
        split_classes=MappingProxyType({"train": 64, "val": 16, "test": 20}),
        per_class=600,
    ),
    Dataset(
        name="cub",
        title="CUB-200-2011",
        origin="https://www.vision.caltech.edu/datasets/cub_200_2011/",
        layout="<class>/*.jpg, or CUB_200_2011/images/<class>/*.jpg",
        classes=200,
        partition="index",
        images=11_788,
        containers=("CUB_200_2011/images", "images"),
        tfds="caltech_birds2011",
        tfds_split="train+test",
    ),
    Dataset(
        name="cars",
        title="Stanford Cars, cars_train",
        origin="https://www.kaggle.com/datasets/jutrera/"
        "stanford-car-dataset-by-classes-folder (the original page is gone)",
        layout="<class>/*.jpg or [car_data/car_data/]train/<class>/*.jpg",
        classes=196,
        partition="index",
        images=8_144,
        containers=("cars_train", "car_data/car_data/train", "car_data/train", "train"),
        tfds="cars196",
    ),
    Dataset(
        name="places",
        title="Places365-Standard, first 200 training images a class",
        origin="http://places2.csail.mit.edu/download.html (easy directory structure)",
        layout="<class>/*.jpg, or places365_standard/train/<class>/*.jpg",
        classes=365,
        partition="index",
        per_class=200,
        containers=("places365_standard/train", "train"),
        first=200,
        tfds="places365_small",
    ),
    Dataset(
        name="plantae",
        title="iNaturalist Plantae, 200 largest classes, at most 600 images each",
        origin="https://github.com/visipedia/inat_comp",
        layout="<class>/*.jpg, or [train_val2018/]Plantae/<class>/*.jpg",
        classes=200,
        partition="index",
        containers=("train_val2018/Plantae", "train_val_images/Plantae", "Plantae"),
        first=600,
        largest=True,
        tfds="i_naturalist2018",
        tfds_keep=("supercategory", "Plantae"),
    ),
    Dataset(
        name="cropdisease",
        title="CropDisease (PlantVillage, the train folder)",
        origin="https://www.kaggle.com/datasets/saroz014/plant-disease",
        layout="<class>/*.jpg, or [dataset/]train/<class>/*.jpg",
        classes=38,
        partition="whole",
        images=43_456,
        containers=("dataset/train", "train"),
        tfds="plant_village",
        tfds_images=54_303,
    ),
    Dataset(
        name="eurosat",
        title="EuroSAT, RGB",
        origin="https://zenodo.org/records/7711810",
        layout="<class>/*.jpg, or 2750/<class>/*.jpg",
        classes=10,
        partition="whole",
        images=27_000,
        containers=("2750", "EuroSAT_RGB", "EuroSAT/2750"),
        tfds="eurosat/rgb",
    ),
    Dataset(
        name="isic",
        title="ISIC 2018 task 3 training set (HAM10000)",
        origin="https://challenge.isic-archive.com/data/#2018",
        layout="ISIC2018_Task3_Training_GroundTruth.csv or HAM10000_metadata.csv, and "
        "image folders; or <class>/*.jpg",
        classes=7,
        partition="whole",
        images=10_015,
    ),
    Dataset(
        name="chestx",
        title="NIH ChestX-ray, images with exactly one of 7 findings",
        origin="https://nihcc.app.box.com/v/ChestXray-NIHCC",
        layout="Data_Entry_2017.csv, and images/ or images_001/images/ to images_012/; "
        "or <class>/*.png",
        classes=7,
        partition="whole",
        images=25_848,
        tolerance=0.01,
    ),
)

DATASETS: Mapping[str, Dataset] = MappingProxyType({d.name: d for d in _ALL})
