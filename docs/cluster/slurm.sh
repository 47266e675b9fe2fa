#!/bin/bash
#SBATCH --job-name=rdc
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --signal=TERM@120
#SBATCH --open-mode=append

srun python run_eval.py --coordinator=auto \
    --config=configs/eval.py:paper --workdir=$SCRATCH/runs/paper \
    --config.data_dir=$SCRATCH/data --config.checkpoint=$SCRATCH/runs/backbone
